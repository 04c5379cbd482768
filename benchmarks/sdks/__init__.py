"""Does it work for the SDKs that people have? Emulated services, real clients, one trouble at a time."""

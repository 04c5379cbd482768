"""The retry loop explored like a database: the real code, a simulated world, and a seed that replays any failure."""

"""A suite under faults: each test runs again with one fault on a virtual wire, and is judged by what happened there."""

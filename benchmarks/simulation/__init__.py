"""Many clients with retry policies against one service, in virtual time; a seed gives the same figures anywhere."""

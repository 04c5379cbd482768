"""The layer below ``super().send`` (contract 14): bytes written, deadlines, heads and bodies.

:mod:`pools` finds pools and prepares connections, :mod:`connect` limits the time to connect and to send,
:mod:`proxies` does so for tunnels, :mod:`response` reads heads and bodies and looks ahead to where a body ends,
:mod:`decoding` decodes bodies. They share :mod:`state` with the adapter.
"""

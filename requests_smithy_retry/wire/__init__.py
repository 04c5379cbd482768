"""The layer below ``super().send`` (contract 14): bytes written, deadlines, heads and bodies.

:mod:`pools` finds pools and prepares connections, :mod:`connect` bounds how they are made and how they send,
:mod:`proxies` does so for tunnels, :mod:`response` reads heads and bodies and looks ahead to where one ends,
:mod:`decoding` decodes it. They meet the adapter in :mod:`state`.
"""

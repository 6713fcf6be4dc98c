"""The stages of a training run, in order; each is functions that can be called alone.

``images`` → ``columns`` → ``learning`` → ``tuning`` (these for each of the ``members``) → ``exits``
→ ``evaluation`` → ``results``.
"""

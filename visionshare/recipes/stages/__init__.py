"""The stages of a training run, in order; each is functions that can be called alone.

``images`` → ``family`` → ``columns`` → ``learning`` → ``sparsification`` → ``tuning`` (these for
each of the ``members``) → ``exits`` → ``evaluation`` → ``results``.
"""

"""Readers: each opens one kind of file or folder of labeled pictures; the registry names them."""

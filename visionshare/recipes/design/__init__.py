"""Recipes that are found: structures within a budget of computation, tried within one of time.

``settings`` says what may vary, ``structure`` what a structure is and ``cost`` what it costs;
``proposals`` are numbered draws of structures, ``halving`` says which is trained next and how long,
``trials`` keeps the table, ``writing`` makes recipes of structures, and ``running`` is the loop.
"""

"""Line-oriented logs of training programs: one file per program, a declaration of what it prints.

``program.py`` says what a declaration is, ``registry.py`` which there are, ``progress.py`` cuts a
log into starts of the program, ``build_run.py`` makes a run of each.
"""

"""The experiments of the paper, one command each: `nds experiment NAME`.

An experiment is a function from a `Context` to `Findings`: tables and pictures (`catalogue` lists them). It trains the
policies that it needs, runs searches, and keeps a row per run, so that it resumes. Code belongs here if it knows a
protocol or a figure of the paper. Searches, training, reports and pictures are those of the other packages.
"""

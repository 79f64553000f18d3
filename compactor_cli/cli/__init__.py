"""The command line: ``compact``, the filter, and ``compactor``, the toolbox around it."""

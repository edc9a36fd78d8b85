"""The studio: a local web page on which a custodian releases once, and everybody explores what was released.

`config` what the administrator allows; `security` who may come in and what a request may be; `catalogue` the public
facts of a data set; `questions` what would be released; `outlook` what it would cost, show and risk; `store` releases,
proposals and notes of work on disk; `work` the one release and when its end is told; `explorer` readings of a release;
`exports` what can be taken home; `views` the pages; `app` all of it together.

No page ever sees a record: data are handed on unopened to :func:`fogline.release`, which pays from a ledger.
"""

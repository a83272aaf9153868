"""Pictures, findings and pages of the experiments. They read records and compute nothing that a record could hold."""

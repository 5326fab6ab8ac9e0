-- The input of the job that waits.
INSERT INTO job_inputs VALUES ('job', '{"session":"demo"}');

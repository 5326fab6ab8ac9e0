-- A job that has ended, with its session.
INSERT INTO job_keys VALUES ('ended', TRUE, 1772366400000000000, 'granted');

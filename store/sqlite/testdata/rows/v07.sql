-- A turn that was put off.
INSERT INTO due_turns VALUES ('demo', 'main', '', TRUE, 1772366400000000000, '', 0, 1, 'the service does not answer');

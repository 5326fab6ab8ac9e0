UPDATE sessions SET title = 'What is there', labels = '{"team":"ops"}' WHERE id = 'granted';
INSERT INTO session_labels VALUES ('granted', 'team', 'ops');

-- A turn that nobody has begun.
INSERT INTO queued_turns VALUES ('queued', 'granted', 1, 'main', '', '{"id":"queued","session":"granted","agent":"main","text":"and then","time":"2026-03-01T12:00:00Z"}');
INSERT INTO due_turns VALUES ('granted', 'main', '', FALSE, 1772366400000000000, '', 0, 1);
UPDATE sessions SET watched = 1772366400000000000 WHERE id = 'granted';

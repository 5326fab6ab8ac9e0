-- The usage of the response, which the program of this version has counted.
INSERT INTO turn_usage VALUES ('granted', 'turn-2', 20513, 'scripted', 'main', 'granted', 10, 2, 0, 0, 0.0);
UPDATE counters SET value = 1 WHERE name = 'usage';

INSERT INTO turn_keys VALUES ('key', 'granted', 'queued', 'sha256:3f', '2', 1772366400000000000);

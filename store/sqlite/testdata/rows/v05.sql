-- An approval whose words are apart.
INSERT INTO approvals VALUES ('worded', 'granted', 2, 'turn-2', 'call-2', 'shell', 'sha256:2f', 'floor', 1772366400123456789, 0, '{"approval":"worded","hash":"sha256:2f","allow":true,"by":"ann","time":"2026-03-01T12:00:00Z"}', TRUE);
INSERT INTO approval_words VALUES ('worded', 'it lists', 'go on', 'shell(ls *)');

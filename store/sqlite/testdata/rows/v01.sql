-- An approval that was decided, a grant, and a response with its usage.
INSERT INTO approvals VALUES ('answered', 'demo', 1, '', 'call', 'write', 'sha256:1f', 'it wrote', 'floor', 1772366400123456789, 0, '{"approval":"answered","hash":"sha256:1f","allow":true,"by":"ann","reason":"fine","time":"2026-03-01T12:00:00Z"}');
INSERT INTO sessions VALUES ('granted', 1, '', 1772366400000000000, 1772366400000000001, 2, 2, 0, 0, '', '{"turns":1,"usage":{"in":10,"out":2},"agent":"main","grants":[{"approval":"yes","asker":"floor","floor":true,"tool":"shell","by":"ann","time":"2026-03-01T12:00:00Z"}]}');
INSERT INTO messages VALUES ('granted', 1, '{"seq":1,"turn":"turn-2","role":"user","kind":"user","parts":[{"type":"text","text":"list it"}],"time":"2026-03-01T12:00:00Z"}');
INSERT INTO messages VALUES ('granted', 2, '{"seq":2,"turn":"turn-2","role":"assistant","kind":"assistant","parts":[{"type":"text","text":"done"}],"model":"scripted","usage":{"in":10,"out":2},"time":"2026-03-01T12:00:00Z"}');

-- Five runs in one row. A program that folds runs excludes those that cannot read them.
INSERT INTO runs VALUES (4, 'folded-0', 0, 'Q65ECSYDTO2SCKUVVMH56MTQIN', 'gate-0', '', '1', 'tool.pre', 'dispatch', 'host', 'name', 'hooks.yaml', 1, 'demo', 'turn', 1, 'main', 'blocking', 'completed', FALSE, 'user_audit', '', 0, '', 1772366400123456789, 1772366400123457789, 1000, '', 'pass', '', '', '', 4, 'WjipHNp2OfhssDE9tWMinQ', '7 1 1000 1000 0;7 2 2000 1000 0;7 3 3000 1000 0;7 4 4000 1000 0;');
INSERT INTO run_hooks VALUES ('WjipHNp2OfhssDE9tWMinQ', 1, 'gate-1', '1', 'name', 'hooks.yaml', 2);
INSERT INTO run_hooks VALUES ('WjipHNp2OfhssDE9tWMinQ', 2, 'gate-2', '1', 'name', 'hooks.yaml', 3);
INSERT INTO run_hooks VALUES ('WjipHNp2OfhssDE9tWMinQ', 3, 'gate-3', '1', 'name', 'hooks.yaml', 4);
INSERT INTO run_hooks VALUES ('WjipHNp2OfhssDE9tWMinQ', 4, 'gate-4', '1', 'name', 'hooks.yaml', 5);
UPDATE counters SET value = 8 WHERE name = 'run';
UPDATE counters SET value = 13 WHERE name = 'oldest';

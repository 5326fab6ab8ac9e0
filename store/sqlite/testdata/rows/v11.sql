UPDATE due_turns SET abort = 'ann' WHERE session = 'demo';

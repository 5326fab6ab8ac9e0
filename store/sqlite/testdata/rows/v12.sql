UPDATE due_turns SET abort_turn = 'turn' WHERE session = 'demo';

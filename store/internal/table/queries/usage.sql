-- name: AddUsage :exec
INSERT INTO turn_usage (session, turn, day, model, agent, root, tokens_in, tokens_out, cache_read, cache_write, cost)
VALUES (@session, @turn, @day, @model, @agent, @root, @tokens_in, @tokens_out, @cache_read, @cache_write, @cost)
ON CONFLICT (session, turn, day, model) DO UPDATE SET
    tokens_in = turn_usage.tokens_in + excluded.tokens_in, tokens_out = turn_usage.tokens_out + excluded.tokens_out,
    cache_read = turn_usage.cache_read + excluded.cache_read, cache_write = turn_usage.cache_write + excluded.cache_write,
    cost = turn_usage.cost + excluded.cost;

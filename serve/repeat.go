package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve/api"
)

// A client that gets no answer does not know whether its message was stored, and sends the
// request again. The repeated request must not run a second turn. It gets the answer of the
// first one. docs/serve.md explains it for users.
//
// With the header Idempotency-Key, the client says which requests are the same. The SDKs of
// OpenAI send no key by themselves, but say in a header that a request is a repetition. Then
// the content of the request is its key, for a limited time.
const (
	headerKey   = "Idempotency-Key"
	headerRetry = "X-Stainless-Retry-Count"
)

// mostKey is the maximum length of a key.
const mostKey = 255

// repeatWindow is how long a repetition without a key belongs to an earlier request. By default,
// the SDKs of OpenAI repeat a request after 10 minutes without an answer.
const repeatWindow = 30 * time.Minute

// repeated takes the key of a request that starts a turn. It returns the turn of an earlier
// request with the same key, or nil.
func (s *Server) repeated(ctx context.Context, q *request, in any) (*startedTurn, error) {
	given := q.r.Header.Values(headerKey)
	again, _ := strconv.Atoi(q.r.Header.Get(headerRetry)) // anything else is no repetition
	switch {
	case len(given) > 1:
		return nil, invalid("", "the header %s is given %d times: give it once", headerKey, len(given))
	case len(given) == 1 && (given[0] == "" || len(given[0]) > mostKey):
		return nil, invalid("", "the header %s must have 1 to %d characters", headerKey, mostKey)
	case len(given) == 0 && q.op.tag != tagOpenAI:
		return nil, nil //nolint:nilnil // there is no key
	}
	content, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", q.op.id, q.r.Header.Get(headerSession), content))
	q.key = belay.SubmitKey{Hash: hex.EncodeToString(hash[:])}
	owner := q.token.Name + "\x00" + q.token.Created.Format(time.RFC3339) // a rotated token stays the same
	if len(given) == 1 {
		q.key.ID = keyID("key", owner, given[0])
	} else {
		q.key.ID, q.key.Replace = keyID("content", owner, q.key.Hash), true
		if again == 0 {
			return nil, nil //nolint:nilnil // the same message may be sent twice on purpose
		}
	}
	first, err := s.store.Submitted(ctx, q.key.ID)
	if errors.Is(err, belay.ErrNotFound) || err == nil && q.key.Replace && time.Since(first.Time) > repeatWindow {
		return nil, nil //nolint:nilnil // the first request did not arrive
	}
	if err != nil {
		return nil, err
	}
	return s.submitted(ctx, q, first)
}

// keyID returns the id of a key in the store, which shows nothing about the client.
func keyID(kind, owner, key string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + owner + "\x00" + key))
	return hex.EncodeToString(sum[:])
}

// submitted returns the turn of an earlier request with the same key.
func (s *Server) submitted(ctx context.Context, q *request, first *belay.SubmittedError) (*startedTurn, error) {
	if first.Key.Hash != q.key.Hash {
		return nil, invalid("", "the %s was used for another request: use a new key for each message", headerKey)
	}
	info, err := s.session(ctx, q, first.Session)
	if err != nil {
		return nil, err
	}
	return &startedTurn{StartedTurn: api.StartedTurn{ID: first.Turn, Session: info.ID, Agent: cmp.Or(info.State.Agent, host.Main), After: first.Key.After}, token: q.token}, nil
}

// submit stores a turn. If another request with the same key was faster, submit returns the turn
// of that request.
func (s *Server) submit(ctx context.Context, q *request, turn belay.QueuedTurn, after string) (*startedTurn, error) {
	turn.Key = q.key
	turn.Key.After = after
	turn.Follows = q.follows
	err := s.store.Submit(ctx, turn)
	if first, ok := errors.AsType[*belay.SubmittedError](err); ok {
		return s.submitted(ctx, q, first)
	}
	return nil, err
}

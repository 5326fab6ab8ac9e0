package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

func listTurns(ctx context.Context, s *Server, q *request, in *api.ListTurns) (api.TurnList, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.TurnList{}, err
	}
	turns, next, err := inspect.Turns(ctx, s.store, &info, in.Before, in.Limit)
	return api.TurnList{Turns: orEmpty(turns), Next: next}, err
}

func readTimeline(ctx context.Context, s *Server, q *request, in *api.ReadTimeline) (api.Timeline, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Timeline{}, err
	}
	journal, err := s.journal()
	if err != nil {
		return api.Timeline{}, err
	}
	out, err := inspect.Timeline(ctx, s.store, journal, &info, in.Turn, in.At)
	if errors.Is(err, belay.ErrNotFound) {
		return api.Timeline{}, notFound("turn", in.Turn)
	}
	out.Spans = orEmpty(out.Spans)
	return out, err
}

// newestMessages returns a page of messages, the newest first.
func (s *Server) newestMessages(ctx context.Context, info *belay.SessionInfo, in *api.ListMessages) (api.MessageList, error) {
	if in.After != 0 {
		return api.MessageList{}, invalid("/after", "with newest=true, pass the field next of the previous page as before")
	}
	before := in.Before
	if before == 0 || before > info.Last+1 {
		before = info.Last + 1
	}
	found, err := inspect.MessagesBefore(ctx, s.store, info.ID, before, in.Limit)
	out := api.MessageList{Messages: slices.Clip(orEmpty(found))}
	if in.NoMedia {
		for i, m := range out.Messages {
			out.Messages[i] = withoutMedia(m)
		}
	}
	if n := len(found); n > 0 && found[n-1].Seq > 1 {
		out.Next = found[n-1].Seq
	}
	return out, err
}

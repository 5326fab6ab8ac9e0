package serve

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// readMedia sends the bytes of an image or a file. The bytes come from users, models and tools,
// so a browser must not run them: an image has its own type, and everything else is a download.
func readMedia(ctx context.Context, s *Server, q *request, in *api.ReadMedia) error {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return err
	}
	for m, err := range s.store.Read(ctx, info.ID, in.Message-1) {
		if err != nil {
			return err
		}
		all := api.MediaOf(m)
		if m.Seq != in.Message || in.Media >= len(all) || len(all[in.Media].Data) == 0 {
			break
		}
		s.sendMedia(q.w, all[in.Media])
		return nil
	}
	return notFound("resource", q.r.URL.Path)
}

// sendMedia sends an image or a file.
func (s *Server) sendMedia(w http.ResponseWriter, m *belay.Media) {
	kind, disposition := "application/octet-stream", "attachment"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, m.MIME) {
		kind, disposition = m.MIME, "inline"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=3600") // a message never changes
	if named := mime.FormatMediaType(disposition, map[string]string{"filename": m.Name}); m.Name != "" && named != "" {
		disposition = named
	}
	h.Set("Content-Disposition", disposition)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timeouts.body))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(m.Data) // ignore errors: the client has left
}

// withoutMedia returns a message without the bytes of its images and files. It does not change
// the message, which others may share.
func withoutMedia(m *belay.Message) *belay.Message {
	if !slices.ContainsFunc(api.MediaOf(m), func(media *belay.Media) bool { return len(media.Data) > 0 }) {
		return m
	}
	out := &belay.Message{
		Seq: m.Seq, Turn: m.Turn, Step: m.Step, Role: m.Role, Kind: m.Kind, Parts: slices.Clone(m.Parts), Time: m.Time, PreModifiedText: m.PreModifiedText, Queued: m.Queued,
		IsSkillInjection: m.IsSkillInjection, IsCompaction: m.IsCompaction, Keep: m.Keep, Model: m.Model, StopReason: m.StopReason, Usage: m.Usage,
	}
	for i := range out.Parts {
		p := &out.Parts[i]
		if p.Media != nil {
			media := *p.Media
			media.Data, p.Media = nil, &media
		}
		if p.Result != nil && len(p.Result.Media) > 0 {
			result := *p.Result
			result.Media = slices.Clone(result.Media)
			for j := range result.Media {
				result.Media[j].Data = nil
			}
			p.Result = &result
		}
	}
	return out
}

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// isImage reports whether the page shows a file as an image. An image at an address of its own is
// not loaded: its server would learn who reads this page.
func isImage(m *belay.Media) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, m.MIME)
}

// mediaPath returns the address of an image or a file of a message.
func mediaPath(session string, m *belay.Message, at int) string {
	return fmt.Sprintf("%s/messages/%d/media/%d", sessionPath(session), m.Seq, at)
}

// sendMedia sends an image or a file of a message, as the API sends it.
func sendMedia(ctx context.Context, v *visit) error {
	message, err := strconv.ParseInt(v.r.PathValue("message"), 10, 64)
	at, err2 := strconv.Atoi(v.r.PathValue("media"))
	if err := errors.Join(err, err2); err != nil {
		return &api.Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "There is no page " + v.r.URL.Path + "."}
	}
	m, err := v.ReadMedia(ctx, api.ReadMedia{Session: v.r.PathValue("session"), Message: message, Media: at})
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", m.MIME)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=3600") // a message never changes
	if !isImage(&m) {
		h.Set("Content-Disposition", "attachment")
	}
	_, _ = v.w.Write(m.Data) // ignore errors: the browser has left
	return nil
}

// mediaName describes a file that the page does not show.
func mediaName(m *belay.Media) string {
	return strings.TrimSpace(cmp.Or(m.Name, m.URL, "a file") + " (" + m.MIME + ")")
}

package serve

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// withFiles is how many times larger than Options.MaxBody a body with files may be.
const withFiles = 16

// fileParts makes the parts of a message from its files.
func fileParts(files []api.File) ([]belay.Part, error) {
	var parts []belay.Part
	for i := range files {
		f, field := &files[i], "/files/"+strconv.Itoa(i)
		kind, err := fileType(f)
		switch {
		case len(f.Data) == 0:
			return nil, invalid(field+"/data", "the file %.80q is empty: leave it out", f.Name)
		case err != nil:
			return nil, invalid(field+"/mime", "the media type %.80q of the file %.80q is invalid: use one such as image/png, or leave it out", f.MIME, f.Name)
		}
		parts = append(parts, belay.File(f.Name, kind, f.Data))
	}
	return parts, nil
}

// shownTypes are the beginnings of the media types that models can read.
var shownTypes = []string{"image/", "text/", "audio/", "video/", "application/pdf"}

// fileType returns the media type of a file. Without a type, the content decides. A text with a
// type that no model reads, such as application/json, becomes text/plain.
func fileType(f *api.File) (string, error) {
	kind := http.DetectContentType(f.Data)
	if f.MIME != "" {
		var err error
		if kind, _, err = mime.ParseMediaType(f.MIME); err != nil || !strings.Contains(kind, "/") {
			return "", strconv.ErrSyntax
		}
	}
	kind, _, _ = strings.Cut(kind, ";")
	known := slices.ContainsFunc(shownTypes, func(t string) bool { return strings.HasPrefix(kind, t) })
	if !known && utf8.Valid(f.Data) && !bytes.ContainsRune(f.Data, 0) {
		return "text/plain", nil
	}
	return kind, nil
}

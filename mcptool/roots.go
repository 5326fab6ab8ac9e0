package mcptool

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// project returns the absolute path of the project, which is the root for servers. It
// returns "" if there is none.
func project(dir string) string {
	whole, err := filepath.Abs(cmp.Or(dir, "."))
	if err != nil {
		return ""
	}
	return whole
}

// capabilities returns what Belay offers to the server. A server at a URL gets no roots: it
// cannot read files of this machine, and a path tells it names that are not its business.
func (s *spec) capabilities() *mcp.ClientCapabilities {
	if s.root == "" {
		return &mcp.ClientCapabilities{}
	}
	return &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}} //nolint:staticcheck // deprecated in the newest protocol, but many servers use it
}

// rootOf returns the root for a directory.
func rootOf(dir string) *mcp.Root { //nolint:staticcheck // likewise
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") { // a drive letter of Windows
		path = "/" + path
	}
	return &mcp.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(dir)} //nolint:staticcheck // likewise
}

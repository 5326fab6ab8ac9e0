package mcptool

import "net/http"

// Guarded returns the default transport of servers with a URL.
func Guarded() *http.Transport { return guarded() }

package mcptool

import "net/http"

// Guarded is the transport of servers that have none of their own.
func Guarded() *http.Transport { return guarded() }

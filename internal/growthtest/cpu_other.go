//go:build !unix

package growthtest

import "time"

// now returns the time of day, because these systems have no common way to read the
// processor time.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

//go:build !unix

package growthtest

import "time"

// now returns the time of day. Processor time is measured differently on each of these systems.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

package config

import "slices"

// The values of the setting snapshots.
const (
	SnapshotsOff   = "off"
	SnapshotsFiles = "files"
	SnapshotsAll   = "all"
)

func snapshotModes() []string { return []string{SnapshotsOff, SnapshotsFiles, SnapshotsAll} }

// looserSnapshots reports whether the project keeps less than the user's settings.
func looserSnapshots(project, user *Config) bool {
	mode := user.Snapshots
	if mode == "" {
		mode = SnapshotsAll
	}
	return slices.Index(snapshotModes(), project.Snapshots) < slices.Index(snapshotModes(), mode)
}

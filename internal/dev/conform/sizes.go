package conform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Sizes compares files of a folder, by name, with the sizes in bytes that a report states for them, and for all
// together. It returns what differs, or nothing.
func Sizes(folder string, stated map[string]int64, total int64) string {
	sum := int64(0)
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return "a file of the report is missing: " + err.Error()
		}
		if info.Size() != stated[name] {
			return fmt.Sprintf("the report states %d bytes for a file of %d", stated[name], info.Size())
		}
		sum += info.Size()
	}
	if sum != total {
		return fmt.Sprintf("files of %d bytes, the total is %d", sum, total)
	}
	return ""
}

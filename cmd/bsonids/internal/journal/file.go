package journal

import "os"

// OSFile is a file of the operating system.
type OSFile struct{ *os.File }

// Size returns the size of the file in bytes.
func (f OSFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

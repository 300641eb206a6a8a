package record

import (
	"fmt"
	"os"
	"syscall"
)

func fileID(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return ""
	}
	return fmt.Sprint(info.VolumeSerialNumber, " ", info.FileIndexHigh, " ", info.FileIndexLow)
}

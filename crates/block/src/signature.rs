//! What is on a device, by its first and last bytes: partition tables, file systems, volume managers.
//!
//! Offsets and magics are those of the Linux kernel's headers (`fs/*/*.h`, `block/partitions`) and of the tools' own
//! on-disk formats.

/// Bytes from the start of a device that are looked at.
pub(crate) const HEAD: usize = 1 << 20;

/// Name, offset from the start, magic.
const AT_START: &[(&str, usize, &[u8])] = &[
    ("a GPT partition table", 512, b"EFI PART"),
    ("a GPT partition table", 4096, b"EFI PART"),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("an XFS file system", 0, b"XFSB"),
    ("a Btrfs file system", 65_600, b"_BHRfS_M"),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a bcachefs or bcache device", 4120, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca]),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("an LVM physical volume", 0, b"LABELONE"),
    ("an LVM physical volume", 1024, b"LABELONE"),
    ("an LVM physical volume", 1536, b"LABELONE"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("a RAID member", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a RAID member", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("swap space", 65_526, b"SWAPSPACE2"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 82, b"FAT32   "),
    ("a FAT file system", 54, b"FAT1"),
    ("a Ceph OSD (BlueStore)", 0, b"bluestore block device"),
    ("an ISO 9660 file system", 32_769, b"CD001"),
    ("a SquashFS file system", 0, b"hsqs"),
    ("a GFS2 file system", 65_536, &[0x01, 0x16, 0x19, 0x70]),
    ("a JFS file system", 32_768, b"JFS1"),
    ("a ReiserFS file system", 65_588, b"ReIsEr"),
];

/// What the first bytes of a device are the beginning of, if that is known.
pub(crate) fn at_start(head: &[u8]) -> Option<&'static str> {
    let known = AT_START.iter().find(|(_, offset, magic)| {
        head.get(*offset..*offset + magic.len()).is_some_and(|found| found == *magic)
    });
    known.map(|(name, ..)| *name).or_else(|| has_mbr(head).then_some("an MBR partition table"))
}

/// What the last bytes of a device are the end of: the second copy of a GPT, or the superblock of an old RAID.
pub(crate) fn at_end(tail: &[u8]) -> Option<&'static str> {
    let from_end = |back: usize| tail.len().checked_sub(back).map(|at| &tail[at..]);
    if [512, 4096].iter().any(|back| from_end(*back).is_some_and(|end| end.starts_with(b"EFI PART"))) {
        return Some("the second copy of a GPT partition table");
    }
    // md 0.90 is in the last whole 64 KiB but one; md 1.0 8 KiB before the end.
    let raid = [0xfc, 0x4e, 0x2b, 0xa9];
    let found =
        (8192..=131_072).step_by(4096).any(|back| from_end(back).is_some_and(|end| end.starts_with(&raid)));
    found.then_some("a RAID member")
}

/// A boot signature, and at least one entry of the table that is in use and none that is absurd.
fn has_mbr(head: &[u8]) -> bool {
    if head.get(510..512) != Some(&[0x55, 0xaa]) {
        return false;
    }
    let entries = head[446..510].as_chunks::<16>().0;
    entries.iter().all(|entry| entry[0] & 0x7f == 0) && entries.iter().any(|entry| entry[4] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_found_where_it_belongs_and_nowhere_else() {
        for (name, offset, magic) in AT_START {
            let mut head = vec![0; HEAD];
            head[*offset..offset + magic.len()].copy_from_slice(magic);
            assert_eq!(at_start(&head), Some(*name));
            assert_eq!(at_start(&head[..*offset]), None, "cut off before {name}");
        }
        assert_eq!(at_start(&[0; 4096]), None);
        assert_eq!(at_start(&[]), None);
    }

    #[test]
    fn a_partition_table_is_told_from_a_boot_signature() {
        let mut head = vec![0; 4096];
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(at_start(&head), None);
        head[446 + 4] = 0x83;
        assert_eq!(at_start(&head), Some("an MBR partition table"));
    }

    #[test]
    fn second_copies_are_found_at_the_end() {
        let mut tail = vec![0; HEAD];
        assert_eq!((at_end(&tail), at_end(&[])), (None, None));
        tail[HEAD - 512..HEAD - 504].copy_from_slice(b"EFI PART");
        assert!(at_end(&tail).unwrap().contains("GPT"));
        let mut tail = vec![0; HEAD];
        tail[HEAD - 65_536..HEAD - 65_532].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
        assert_eq!(at_end(&tail), Some("a RAID member"));
    }
}

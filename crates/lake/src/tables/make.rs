//! Tables made: rows generated, encoded as Parquet, and written, all three side by side.
//!
//! An operation is a file. Its rows are generated and encoded on a thread of their own; what is encoded goes to storage piece by
//! piece through a short queue. Time that the encoder waits for room in it is time in which storage was the limit.

use crate::tables::books::Books;
use crate::tables::failure::Failure;
use crate::tables::lake::{LABEL, Lake, Part};
use crate::tables::rows::batches;
use crate::tables::tasks::{Doing, Ended, Tasks};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;
use tidemark_analytics::job::{Compression, Data, Layout};
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tokio::sync::mpsc;

/// Bytes of a piece: of a multipart upload, more than the 5 MiB that S3 asks for at least.
const PIECE: usize = 8 << 20;

/// Pieces on their way between encoder and storage.
const PIECES: usize = 2;

/// Makes all tables of a set in a store, whatever is there, and so many files side by side: what a load that makes tables does,
/// without a load around it. Gives how many rows they have.
///
/// # Errors
/// Why a file was not made.
pub async fn tables(
    store: Arc<dyn ObjectStore>,
    data: &Data,
    layout: &Layout,
    writers: usize,
) -> Result<u64, Failure> {
    let lake = Lake { store, root: Path::default(), data: data.clone() };
    let maker = Maker::new(lake, layout, true, Arc::default());
    let files = stream::iter(maker.parts.clone()).map(|part| maker.part(part));
    files.buffer_unordered(writers).try_fold(0, |rows, file| std::future::ready(Ok(rows + file.rows))).await
}

/// What makes tables.
pub(crate) struct Maker {
    lake: Lake,
    layout: Layout,
    fresh: bool,
    parts: Vec<Part>,
    books: Arc<Books>,
}

/// Where the time of a file went, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub generating_ns: u64,
    pub encoding_ns: u64,
    pub storing_ns: u64,
}

/// A file that was written, or kept.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub table: &'static str,
    pub rows: u64,
    pub bytes: u64,
    pub kept: bool,
    pub spent: Spent,
}

impl Maker {
    pub(crate) fn new(lake: Lake, layout: &Layout, fresh: bool, books: Arc<Books>) -> Self {
        let parts = Part::all(&lake.data, layout);
        Self { lake, layout: layout.clone(), fresh, parts, books }
    }

    async fn part(&self, part: Part) -> Result<Written, Failure> {
        let label = part.label(&self.lake.data, &self.layout);
        if !self.fresh
            && let Some(file) = self.lake.has(&part, &label).await?
        {
            let rows = u64::try_from(file.footer.file_metadata().num_rows()).unwrap_or(0);
            return Ok(Written {
                table: part.table.name,
                rows,
                bytes: file.bytes,
                kept: true,
                spent: Spent::default(),
            });
        }
        let (sender, pieces) = mpsc::channel(PIECES);
        let (data, properties) = (self.lake.data.clone(), properties(&self.layout, label));
        let encoder = tokio::task::spawn_blocking(move || encode(&data, part, properties, sender));
        let place = self.lake.place(&part);
        let stored = store(&*self.lake.store, &place, pieces).await;
        let encoded =
            encoder.await.map_err(|_| Failure::new(Fault::Local, "the generator of rows has failed"));
        let (bytes, finishing_ns) = match (stored, &encoded) {
            (Err(Unstored::Cut), Ok(Err(failure)) | Err(failure)) => return Err(failure.clone()),
            (stored, _) => stored?,
        };
        let (rows, mut spent) = encoded??;
        spent.storing_ns += finishing_ns;
        Ok(Written { table: part.table.name, rows, bytes, kept: false, spent })
    }
}

impl Tasks for Maker {
    fn begin(self: Arc<Self>, _slot: u32, operation: Operation, _clock: Clock, _sent: Tick) -> Doing {
        Box::pin(async move {
            let Some(part) = self.parts.get(operation.item as usize).copied() else {
                return Failure::new(Fault::Local, "the set has no such file").ended();
            };
            match self.part(part).await {
                Ok(written) => {
                    let bytes = if written.kept { 0 } else { written.bytes };
                    self.books.written(written);
                    Ended { outcome: Outcome::success(bytes), ..Ended::default() }
                }
                Err(failure) => failure.of(self.lake.place(&part).as_ref()).ended(),
            }
        })
    }
}

fn properties(layout: &Layout, label: String) -> WriterProperties {
    let statistics = if layout.page_index { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
    let codec = match layout.compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
    };
    WriterProperties::builder()
        .set_compression(codec)
        .set_max_row_group_row_count(Some(usize::try_from(layout.row_group_rows).unwrap_or(usize::MAX)))
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(!layout.page_index)
        .set_created_by("Tidemark".into())
        .set_key_value_metadata(Some(vec![KeyValue::new(LABEL.to_owned(), label)]))
        .build()
}

/// A piece of a file.
struct Piece {
    bytes: Bytes,
    is_last: bool,
}

/// Where an encoder writes: pieces that go to storage.
struct Pieces {
    buffer: Vec<u8>,
    sender: mpsc::Sender<Piece>,
    waited_ns: u64,
}

impl Pieces {
    fn send(&mut self, is_last: bool) -> io::Result<()> {
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE)).into();
        let began = Instant::now();
        let sent = self.sender.blocking_send(Piece { bytes, is_last });
        self.waited_ns += began.elapsed().as_nanos() as u64;
        // Whoever stores has said why it stopped.
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.send(false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Generates and encodes the rows of a part. Gives their number.
fn encode(
    data: &Data,
    part: Part,
    properties: WriterProperties,
    sender: mpsc::Sender<Piece>,
) -> Result<(u64, Spent), Failure> {
    let unknown = || Failure::new(Fault::Local, format!("there is no generator for {}", part.table.name));
    let mut batches =
        batches(data.set, part.table.name, data.scale(), part.part, part.of).ok_or_else(unknown)?;
    let pieces = Pieces { buffer: Vec::with_capacity(PIECE), sender, waited_ns: 0 };
    let mut writer = ArrowWriter::try_new(pieces, batches.schema(), Some(properties))?;
    let (mut rows, mut spent) = (0, Spent::default());
    loop {
        let began = Instant::now();
        let batch = batches.next();
        spent.generating_ns += began.elapsed().as_nanos() as u64;
        let Some(batch) = batch else { break };
        let batch = batch.map_err(|error| Failure::new(Fault::Local, error.to_string()))?;
        rows += batch.num_rows() as u64;
        let began = Instant::now();
        writer.write(&batch)?;
        spent.encoding_ns += began.elapsed().as_nanos() as u64;
    }
    let began = Instant::now();
    let mut pieces = writer.into_inner()?;
    pieces.send(true).map_err(|_| Failure::new(Fault::Local, "the file was not stored"))?;
    spent.encoding_ns =
        (spent.encoding_ns + began.elapsed().as_nanos() as u64).saturating_sub(pieces.waited_ns);
    spent.storing_ns = pieces.waited_ns;
    Ok((rows, spent))
}

/// Why a file was not stored.
enum Unstored {
    /// Its encoder has stopped, and knows why.
    Cut,
    /// Storage failed.
    Failed(Failure),
}

impl From<object_store::Error> for Unstored {
    fn from(error: object_store::Error) -> Self {
        Unstored::Failed(error.into())
    }
}

impl From<Unstored> for Failure {
    fn from(unstored: Unstored) -> Self {
        match unstored {
            Unstored::Cut => Failure::new(Fault::Local, "the generator of rows has stopped"),
            Unstored::Failed(failure) => failure,
        }
    }
}

/// Stores a file, in one request if it is one piece. Gives its bytes, and how long storage took when all was encoded.
async fn store(
    store: &dyn ObjectStore,
    place: &Path,
    mut pieces: mpsc::Receiver<Piece>,
) -> Result<(u64, u64), Unstored> {
    let first = pieces.recv().await.ok_or(Unstored::Cut)?;
    if first.is_last {
        let (bytes, began) = (first.bytes.len() as u64, Instant::now());
        store.put(place, first.bytes.into()).await?;
        return Ok((bytes, began.elapsed().as_nanos() as u64));
    }
    let mut upload = store.put_multipart(place).await?;
    let stored = parts(&mut *upload, first, pieces).await;
    if stored.is_err() {
        // What storage keeps of a broken upload, nobody sees; the failure that counts is the first.
        let _ = upload.abort().await;
    }
    stored
}

async fn parts(
    upload: &mut dyn MultipartUpload,
    first: Piece,
    mut pieces: mpsc::Receiver<Piece>,
) -> Result<(u64, u64), Unstored> {
    let (mut piece, mut bytes) = (first, 0);
    loop {
        let began = Instant::now();
        bytes += piece.bytes.len() as u64;
        upload.put_part(PutPayload::from(piece.bytes)).await?;
        if piece.is_last {
            upload.complete().await?;
            return Ok((bytes, began.elapsed().as_nanos() as u64));
        }
        piece = pieces.recv().await.ok_or(Unstored::Cut)?;
    }
}

/** Takes a document's file: by the file picker, or dropped anywhere on what is inside. */

import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { bytes } from '../lib/format';
import { Notice } from './notice';

interface Props {
  take: (text: string, name: string) => void;
  /** Largest file, bytes. */
  most: number;
  /** The page, which puts the button where it fits. */
  children: (choose: (words: string) => ComponentChildren) => ComponentChildren;
}

/** Whether something that is dragged over the page is a file. */
const isFile = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;

export function Drop({ take, most, children }: Props) {
  // Entering a child leaves its parent: counted, so that the mark does not flicker.
  const [depth, setDepth] = useState(0);
  const [trouble, setTrouble] = useState('');
  const picker = useRef<HTMLInputElement>(null);

  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > most) {
      setTrouble(`${file.name} has ${bytes(file.size)}; the limit is ${bytes(most)}.`);
      return;
    }
    setTrouble('');
    take(await file.text(), file.name);
  };
  const choose = (words: string) => (
    <button type="button" class="small" onClick={() => picker.current?.click()}>
      {words}
    </button>
  );
  return (
    <div
      class={depth > 0 ? 'drop over' : 'drop'}
      onDragEnter={(event) => isFile(event) && setDepth((depth) => depth + 1)}
      onDragLeave={(event) => isFile(event) && setDepth((depth) => Math.max(0, depth - 1))}
      onDragOver={(event) => isFile(event) && event.preventDefault()}
      onDrop={(event) => {
        if (!isFile(event)) return;
        event.preventDefault();
        setDepth(0);
        void read(event.dataTransfer?.files[0]);
      }}
    >
      <input
        ref={picker}
        type="file"
        class="unseen"
        tabIndex={-1}
        aria-label="Document file"
        accept=".yaml,.yml,.xml,.fio,.ini,.job,text/*"
        onChange={(event) => {
          void read(event.currentTarget.files?.[0]);
          event.currentTarget.value = '';
        }}
      />
      {trouble && <Notice tone="bad">{trouble}</Notice>}
      {children(choose)}
    </div>
  );
}

/** Where a file can be dropped, for those who do not know that it can. */
export function DropZone({ choose, children }: { choose: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="dropzone">
      <svg width="30" height="30" viewBox="0 0 24 24" aria-hidden="true">
        <path d="M12 15V4m0 0L7.5 8.5M12 4l4.5 4.5M4 14v5h16v-5" />
      </svg>
      <div>
        <strong>Drop a file here</strong>
        <small>Tidemark YAML, COSBench XML or a fio job file</small>
      </div>
      <span class="row">
        {choose}
        {children}
      </span>
    </div>
  );
}

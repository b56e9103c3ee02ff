/** Takes a file: by the file picker, or dropped anywhere on the page. */

import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { bytes } from '../../lib/format';
import { Notice } from '../../parts/notice';

interface Props {
  take: (text: string, name: string) => void;
  /** Largest file, bytes. */
  most: number;
  /** The page, which puts the button where it fits. */
  children: (choose: ComponentChildren) => ComponentChildren;
}

export function Upload({ take, most, children }: Props) {
  const [over, setOver] = useState(false);
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
  const choose = (
    <>
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
      <button class="small" onClick={() => picker.current?.click()}>
        Choose a file…
      </button>
    </>
  );
  return (
    <div
      class={over ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget === event.target && setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void read(event.dataTransfer?.files[0]);
      }}
    >
      {trouble && <Notice tone="bad">{trouble}</Notice>}
      {children(choose)}
    </div>
  );
}

import type { ReactNode } from 'react';
import { DropZone, type FileDropItem, FileTrigger, Text } from 'react-aria-components';
import { Button } from './Button';
import css from './FileDrop.module.css';

/** Takes one file: dropped, pasted, or chosen with the button. */
export function FileDrop({
  label,
  button = 'Choose a file',
  accept,
  file,
  onFile,
  children,
}: {
  label: string;
  button?: string;
  /** Endings or media types that the file dialog offers. */
  accept: string[];
  file?: File | undefined;
  onFile: (file: File) => void;
  children?: ReactNode;
}) {
  return (
    <DropZone
      className={css.zone}
      aria-label={label}
      getDropOperation={() => 'copy'}
      onDrop={async (event) => {
        const item = event.items.find((one): one is FileDropItem => one.kind === 'file');
        if (item) onFile(await item.getFile());
      }}
    >
      <FileTrigger
        acceptedFileTypes={accept}
        onSelect={(files) => {
          const chosen = files?.item(0);
          if (chosen) onFile(chosen);
        }}
      >
        <Button>{button}</Button>
      </FileTrigger>
      <Text slot="label" className={file ? undefined : css.text}>
        {file ? file.name : label}
      </Text>
      {children}
    </DropZone>
  );
}

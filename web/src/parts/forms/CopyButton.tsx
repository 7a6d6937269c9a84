import { type RefObject, useState } from 'react';
import { Button } from './Button';

/** Milliseconds for which the button confirms the copy. */
const CONFIRMED_MS = 2_000;

const WORDS = { copied: 'Copied', selected: 'Selected: press Ctrl+C', refused: 'Select it and copy it' };

/** Copies a text. Where the browser forbids it, as without TLS, the text in `source` is selected for the keyboard. */
export function CopyButton({
  text,
  label,
  name,
  isQuiet = false,
  source,
}: {
  text: string;
  label: string;
  /** For screen readers, where the label is short. */
  name?: string;
  isQuiet?: boolean;
  source?: RefObject<HTMLElement | null>;
}) {
  const [state, setState] = useState<keyof typeof WORDS>();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      if (source?.current) window.getSelection()?.selectAllChildren(source.current);
      setState(source?.current ? 'selected' : 'refused');
    }
    setTimeout(() => setState(undefined), CONFIRMED_MS);
  };
  return (
    <Button
      kind={isQuiet ? 'quiet' : 'secondary'}
      onPress={() => void copy()}
      {...(name && !state ? { 'aria-label': name } : {})}
    >
      <span role="status">{state ? WORDS[state] : label}</span>
    </Button>
  );
}

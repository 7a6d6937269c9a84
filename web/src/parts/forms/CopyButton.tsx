import { useState } from 'react';
import { useToast } from '../Toasts';
import { Button } from './Button';

const COPIED_MS = 2_000;

/** Copies a text. Where the browser forbids it, the person is asked to copy by hand. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setIsCopied(true);
      setTimeout(() => setIsCopied(false), COPIED_MS);
    } catch {
      toast('The browser does not allow copying. Select the text and copy it.', 'bad');
    }
  };
  return <Button onPress={() => void copy()}>{isCopied ? 'Copied' : label}</Button>;
}

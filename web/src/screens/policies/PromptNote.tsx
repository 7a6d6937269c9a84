import { Notice } from '../../parts/States';

/** Prompts that are not sent cannot be searched; the wrappers do not send them by default. */
export function PromptNote() {
  return (
    <Notice>
      The patterns can search only prompts that arrive here. The wrappers send none unless{' '}
      <code>capturePayloads</code> is on.
    </Notice>
  );
}

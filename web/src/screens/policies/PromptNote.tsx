import { Notice } from '../../parts/States';

/** Prompts that are not sent cannot be searched; the wrappers do not send them by default. */
export function PromptNote() {
  return (
    <Notice>
      The patterns can search only prompts that arrive here. The wrappers send none unless{' '}
      <code>capturePayloads</code> is on. With <code>policyVerdicts: true</code> a wrapper checks the patterns
      before the call and sends only the verdict, never the prompt.
    </Notice>
  );
}

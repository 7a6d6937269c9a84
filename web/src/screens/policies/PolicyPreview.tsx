import { useState } from 'react';
import { Link } from 'wouter';
import { type components, query } from '../../api/client';
import { count, time } from '../../app/format';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { FormError } from '../../parts/forms/FormError';
import { Chip } from '../../parts/Page';
import { Notice } from '../../parts/States';
import type { PolicyBody, PolicyType } from './policyWords';
import { patternNumber } from './policyWords';

const ROWS_SHOWN = 20;

const UNJUDGED: Record<string, string> = {
  prompts_not_stored: 'their prompts are not stored',
  environment_unknown: 'their environment is unknown',
  key_unknown: 'their key is unknown',
  cost_unknown: 'their cost is unknown',
};

/**
 * The alerts that the newest calls would have raised under a configuration that is not saved yet. It runs by a button, since each
 * preview is a record of the audit log.
 */
export function PolicyPreview({ type, config }: { type: PolicyType; config: PolicyBody['config'] }) {
  const may = useMay();
  const [shown, setShown] = useState<PolicyBody['config']>();
  const preview = query.useMutation('post', '/api/v1/policies/{policy_type}/preview');
  // A pattern is a way to read prompts, so its preview needs the scope to read them.
  if (type === 'banned_patterns' && !may({ scope: 'payloads:read' })) return null;
  const run = () => {
    setShown(config);
    preview.mutate({ params: { path: { policy_type: type } }, body: { config, enabled: true } });
  };
  const isStale = shown !== undefined && JSON.stringify(shown) !== JSON.stringify(config);
  return (
    <section aria-label="Preview" style={{ display: 'grid', gap: 12, justifyItems: 'start' }}>
      <Button isPending={preview.isPending} onPress={run}>
        {preview.isPending ? 'Judging …' : 'Preview on the newest calls'}
      </Button>
      {isStale && <Notice>The configuration has changed since this preview.</Notice>}
      <FormError error={preview.error} />
      {preview.data && (
        <Result preview={preview.data} patterns={shown && 'regexes' in shown ? shown.regexes : []} />
      )}
    </section>
  );
}

type Preview = components['schemas']['PolicyPreview'];

function Result({ preview, patterns }: { preview: Preview; patterns: readonly string[] }) {
  const unjudged = Object.entries(preview.unjudged).filter(([, size]) => size > 0);
  return (
    <>
      {preview.warnings?.map(({ path, reason }) => {
        const number = patternNumber(path);
        return (
          <Notice key={path} kind="warn">
            Pattern {number} <code>{patterns[number - 1]}</code> is skipped: {reason}.
          </Notice>
        );
      })}
      <p role="status">
        {preview.events === 0
          ? 'There are no calls yet.'
          : `${count(preview.flagged)} of the newest ${count(preview.events)} calls would have raised an alert.`}
        {preview.oldest && ` The oldest is of ${time(preview.oldest)}.`}
      </p>
      {unjudged.map(([reason, size]) => (
        <p key={reason} style={{ color: 'var(--muted)' }}>
          {count(size)} calls cannot be judged: {UNJUDGED[reason] ?? reason}.
        </p>
      ))}
      <ul style={{ display: 'grid', gap: 6, listStyle: 'none' }}>
        {preview.flagged_events.slice(0, ROWS_SHOWN).map((event) => (
          <li key={event.event_id}>
            <Chip kind={event.severity === 'high' ? 'bad' : event.severity === 'medium' ? 'warn' : 'plain'}>
              {event.severity}
            </Chip>{' '}
            <Link href={`/events/${event.event_id}`}>{time(event.timestamp)}</Link> {event.message}
          </li>
        ))}
      </ul>
      {preview.flagged > ROWS_SHOWN && (
        <p style={{ color: 'var(--muted)' }}>The newest {ROWS_SHOWN} of them are shown.</p>
      )}
    </>
  );
}

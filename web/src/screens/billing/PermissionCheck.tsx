import { useEffect, useRef } from 'react';
import { query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { FormError } from '../../parts/forms/FormError';
import { Card, Chip } from '../../parts/Page';

/** Asks the provider what the credentials may read. */
export function PermissionCheck({ id, isImmediate }: { id: string; isImmediate: boolean }) {
  const check = query.useMutation('post', '/api/v1/billing-connections/{id}/test');
  const isAsked = useRef(false);
  const ask = () => check.mutate({ params: { path: { id } } });
  useEffect(() => {
    if (!isImmediate || isAsked.current) return;
    isAsked.current = true;
    ask();
  });
  return (
    <Card
      title="Permissions"
      aside={
        <Button isPending={check.isPending} onPress={ask}>
          {check.isPending ? 'Checking …' : 'Check permissions'}
        </Button>
      }
    >
      <div role="status">
        {check.error ? (
          <FormError error={check.error} />
        ) : check.data ? (
          <dl style={{ display: 'grid', gap: 8 }}>
            {check.data.checks.map(({ name, ok, detail }) => (
              <div key={name}>
                <dt>
                  <Chip kind={ok ? 'good' : 'bad'}>{ok ? '✓ allowed' : '✕ missing'}</Chip>{' '}
                  {name.replaceAll('_', ' ')}
                </dt>
                <dd style={{ color: 'var(--muted)' }}>{detail}</dd>
              </div>
            ))}
          </dl>
        ) : (
          <p style={{ color: 'var(--muted)' }}>
            The check asks the provider for each report that a sync reads. It changes nothing.
          </p>
        )}
      </div>
    </Card>
  );
}

import { useState } from 'react';
import { Link } from 'wouter';
import { query } from '../../api/client';
import { withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { useMay } from '../../app/session';
import { Button, ButtonLink } from '../../parts/forms/Button';
import { Modal } from '../../parts/forms/Modal';
import { Cents } from '../../parts/Money';
import { Card, Chip, Grid, Page } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { PolicyEditor } from './PolicyEditor';
import { PromptNote } from './PromptNote';
import { POLICIES, type Policy, type PolicyType, patternNumber, policyName } from './policyWords';

const PATH = '/api/v1/policies';

export default function Policies() {
  const mayWrite = useMay()({ scope: 'policies:write' });
  const [open, setOpen] = useState<PolicyType>();
  const policies = query.useQuery('get', PATH, {});
  const policyOf = (type: PolicyType) => policies.data?.policies.find((one) => one.policy_type === type);
  return (
    <Page
      title="Policies"
      lead="Each call is judged as it arrives. A call that breaks a policy raises an alert; nothing is blocked."
      actions={<ButtonLink href="/alerts">Alerts</ButtonLink>}
    >
      {policies.isPending ? (
        <Loading />
      ) : policies.error ? (
        <ErrorState error={policies.error} retry={() => void policies.refetch()} />
      ) : (
        <Grid min={420}>
          {POLICIES.map(({ type, name, does }) => {
            const policy = policyOf(type);
            return (
              <Card
                key={type}
                title={name}
                aside={
                  policy ? (
                    <Chip kind={policy.enabled ? 'good' : 'plain'}>{policy.enabled ? 'On' : 'Off'}</Chip>
                  ) : (
                    <Chip>Not set</Chip>
                  )
                }
              >
                <p style={{ color: 'var(--muted)' }}>{does}</p>
                {policy && <Config policy={policy} />}
                {type === 'banned_patterns' && <PromptNote />}
                {policy?.warnings && policy.warnings.length > 0 && (
                  <Notice kind="warn">
                    {count(policy.warnings.length)}{' '}
                    {policy.warnings.length === 1 ? 'pattern is' : 'patterns are'} skipped. Open the editor to
                    see why.
                  </Notice>
                )}
                {policy?.wrapper_warnings?.map(({ path, reason }) => (
                  <Notice key={path} kind="warn">
                    Pattern {patternNumber(path)} is searched for in prompts that arrive here only: {reason}.
                  </Notice>
                ))}
                <div style={{ display: 'flex', flexWrap: 'wrap', gap: 10, alignItems: 'center' }}>
                  {mayWrite && (
                    <Button aria-label={`${policy ? 'Edit' : 'Set'} ${name}`} onPress={() => setOpen(type)}>
                      {policy ? 'Edit' : 'Set'}
                    </Button>
                  )}
                  <Link
                    href={withQuery('/alerts', { policy_type: type, status: 'open' })}
                    aria-label={`Open alerts of ${name}`}
                  >
                    Open alerts
                  </Link>
                  {policy && (
                    <span style={{ color: 'var(--muted)', fontSize: '0.75rem' }}>
                      changed {time(policy.updated_at)}
                    </span>
                  )}
                </div>
              </Card>
            );
          })}
        </Grid>
      )}
      <Modal
        title={open ? policyName(open) : ''}
        isOpen={open !== undefined}
        onClose={() => setOpen(undefined)}
        side
      >
        {open && (
          <PolicyEditor key={open} type={open} present={policyOf(open)} onClose={() => setOpen(undefined)} />
        )}
      </Modal>
    </Page>
  );
}

/** The configuration in a few words. */
function Config({ policy: { config } }: { policy: Policy }) {
  if ('threshold_cents' in config)
    return (
      <p>
        {config.threshold_cents === 0 ? (
          'No threshold: nothing is judged.'
        ) : (
          <>
            From <Cents cents={config.threshold_cents} /> a call.
          </>
        )}
      </p>
    );
  if ('prod_key_prefixes' in config)
    return (
      <>
        <Values label="Production keys begin with" values={config.prod_key_prefixes} />
        <Values label="Allowed environments" values={config.allowed_envs} />
      </>
    );
  if ('regexes' in config) return <Values label="Patterns" values={config.regexes} />;
  return <Values label="Models" values={config.models} />;
}

const VALUES_SHOWN = 8;

function Values({ label, values }: { label: string; values: readonly string[] }) {
  return (
    <p style={{ overflowWrap: 'anywhere' }}>
      {label}:{' '}
      {values.length === 0
        ? 'none, so nothing is judged'
        : values.slice(0, VALUES_SHOWN).map((value, at) => (
            <span key={value}>
              {at > 0 && ', '}
              <code>{value}</code>
            </span>
          ))}
      {values.length > VALUES_SHOWN && ` and ${values.length - VALUES_SHOWN} more`}
    </p>
  );
}

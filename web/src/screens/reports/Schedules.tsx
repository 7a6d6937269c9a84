import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type components, errorText, isProblem, query } from '../../api/client';
import { time } from '../../app/format';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Checkbox, Checkboxes } from '../../parts/forms/Checkboxes';
import { Confirm } from '../../parts/forms/Confirm';
import { Form, TextField } from '../../parts/forms/Fields';
import { Card, Chip, Facts, Grid } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { ReportsPage } from './ReportsPage';
import { ALL_SECTIONS, SECTION_OPTIONS, type Section, sectionNames } from './sections';

type Schedule = components['schemas']['ReportSchedule'];
type Cadence = Schedule['cadence'];

const CADENCES: Record<Cadence, { title: string; when: string }> = {
  weekly: { title: 'Weekly', when: 'On Mondays at 06:00, over the week before.' },
  monthly: { title: 'Monthly', when: 'On the first at 06:00, over the month before.' },
};

export default function Schedules() {
  const schedules = query.useQuery('get', '/api/v1/reports/schedules', {});
  return (
    <ReportsPage>
      {schedules.isPending ? (
        <Loading />
      ) : schedules.error ? (
        <ErrorState error={schedules.error} retry={() => void schedules.refetch()} />
      ) : (
        <Grid min={380}>
          {(Object.keys(CADENCES) as Cadence[]).map((cadence) => (
            <ScheduleCard
              key={cadence}
              cadence={cadence}
              schedule={schedules.data.schedules.find((one) => one.cadence === cadence)}
            />
          ))}
        </Grid>
      )}
    </ReportsPage>
  );
}

function ScheduleCard({ cadence, schedule }: { cadence: Cadence; schedule: Schedule | undefined }) {
  const may = useMay();
  const client = useQueryClient();
  const toast = useToast();
  const [isEditing, setIsEditing] = useState(false);
  const [isEnding, setIsEnding] = useState(false);
  const { title, when } = CADENCES[cadence];
  const end = query.useMutation('delete', '/api/v1/reports/schedules/{cadence}', {
    onSuccess: async () => {
      setIsEnding(false);
      toast(`${title} reports have ended. Reports that were made stay until they expire.`);
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reports/schedules'] });
    },
  });
  return (
    <Card title={title} aside={<Chip kind={schedule ? 'good' : 'plain'}>{schedule ? 'On' : 'Off'}</Chip>}>
      <p>{when}</p>
      {isEditing ? (
        <ScheduleForm cadence={cadence} schedule={schedule} onEnd={() => setIsEditing(false)} />
      ) : (
        <>
          {schedule && (
            <Facts
              items={[
                ['Next report', time(schedule.next.due_at)],
                ['Over', `${schedule.next.period_from} – ${schedule.next.period_to}`],
                ['Sections', sectionNames(schedule.sections)],
                ['Time zone', schedule.time_zone],
                ['Delivery', deliveryText(schedule)],
              ]}
            />
          )}
          {may({ scope: 'reports:write' }) && (
            <div style={{ display: 'flex', gap: 10 }}>
              <Button onPress={() => setIsEditing(true)}>
                {schedule ? 'Change' : `Make ${title.toLowerCase()} reports`}
              </Button>
              {schedule && (
                <Button kind="danger" onPress={() => setIsEnding(true)}>
                  End
                </Button>
              )}
            </div>
          )}
        </>
      )}
      <Confirm
        title={`End ${title.toLowerCase()} reports`}
        action="End them"
        isDanger
        isOpen={isEnding}
        isBusy={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate({ params: { path: { cadence } } })}
        onClose={() => setIsEnding(false)}
      >
        <p>No further report is made. Reports that were made stay until they expire.</p>
      </Confirm>
    </Card>
  );
}

function deliveryText(schedule: Schedule): string {
  const ways = schedule.deliveries.map((one) => (one.type === 'email' ? one.to : 'webhook'));
  return ['list of reports', ...ways].join(', ');
}

function ScheduleForm({
  cadence,
  schedule,
  onEnd,
}: {
  cadence: Cadence;
  schedule: Schedule | undefined;
  onEnd: () => void;
}) {
  const client = useQueryClient();
  const toast = useToast();
  const [sections, setSections] = useState<Section[]>(schedule?.sections ?? ALL_SECTIONS);
  const [zone, setZone] = useState(schedule?.time_zone ?? '');
  const [mails, setMails] = useState(
    schedule?.deliveries.flatMap((one) => (one.type === 'email' ? [one.to] : [])).join(', ') ?? '',
  );
  const [hasWebhook, setHasWebhook] = useState(
    schedule?.deliveries.some((one) => one.type === 'webhook') ?? false,
  );
  const put = query.useMutation('put', '/api/v1/reports/schedules/{cadence}', {
    onSuccess: async (made) => {
      toast(`The next ${cadence} report is made ${time(made.next.due_at)}.`);
      onEnd();
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reports/schedules'] });
    },
  });
  const addresses = mails.split(/[\s,;]+/).filter(Boolean);
  const faults = isProblem(put.error) ? (put.error.errors ?? []) : [];
  const zoneFault = faults.find(({ field }) => field === 'time_zone')?.message;
  const mailFault = faults.find(({ field }) => field.startsWith('deliveries'))?.message;
  return (
    <Form
      onSubmit={() =>
        put.mutate({
          params: { path: { cadence } },
          body: {
            sections,
            time_zone: zone.trim() || null,
            deliveries: [
              ...(hasWebhook ? [{ type: 'webhook' as const }] : []),
              ...addresses.map((to) => ({ type: 'email' as const, to })),
            ],
          },
        })
      }
      actions={
        <>
          <Button kind="primary" type="submit" isPending={put.isPending} isDisabled={sections.length === 0}>
            {put.isPending ? 'Saving …' : 'Save'}
          </Button>
          <Button onPress={onEnd}>Cancel</Button>
        </>
      }
    >
      <Checkboxes
        label="Sections"
        value={sections}
        options={SECTION_OPTIONS}
        onChange={setSections}
        error={sections.length === 0 ? 'Choose at least one section.' : undefined}
      />
      <TextField
        label="Time zone"
        value={zone}
        onChange={setZone}
        placeholder="Europe/Berlin"
        help="Empty: the organization's."
        error={zoneFault}
      />
      <TextField
        label="Mail it to"
        value={mails}
        onChange={setMails}
        placeholder="finance@example.com"
        help="Addresses with commas between them. Empty: the report is only in the list."
        error={mailFault}
      />
      <Checkbox isSelected={hasWebhook} onChange={setHasWebhook}>
        Send the webhook report.generated
      </Checkbox>
      {put.error && !zoneFault && !mailFault && <Notice kind="bad">{errorText(put.error)}</Notice>}
    </Form>
  );
}

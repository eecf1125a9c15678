// A member of a group with kafkajs: what `group_member.py` is for Python's clients.
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, group] = process.argv.slice(2)
const brokers = bootstrap.split(',')
const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { retries: 50, maxRetryTime: 500 } })
const consumer = kafka.consumer({
  groupId: group,
  sessionTimeout: Number(process.env.SESSION_MS),
  heartbeatInterval: 300,
  maxWaitTimeInMs: 100,
})

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  const owned = (payload.memberAssignment[topic] || []).sort((a, b) => a - b)
  console.log(['owns', ...owned].join(' '))
})
process.stdin.once('data', () => join().catch(fail))
process.stdin.on('end', () => consumer.disconnect().then(() => console.log('left') || process.exit(0)))

async function join() {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ message }) => console.log(`read ${message.value}`),
  })
}

function fail(error) {
  console.error(error)
  process.exit(1)
}
